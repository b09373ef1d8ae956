-- each walks the list at a path of keys; nothing when there is none.
local function each(from, ...)
  local list = dig(from, ...)
  if type(list) ~= "table" then
    list = {}
  end
  return ipairs(list)
end
