-- keys are those of the table at a path of keys, sorted: pairs has no order, and an answer must have one.
local function keys(from, ...)
  local found = {}
  local map = dig(from, ...)
  if type(map) == "table" then
    for key in pairs(map) do
      table.insert(found, key)
    end
  end
  table.sort(found)
  return found
end
