-- dig is the value at a path of keys; nil when there is none on the way.
local function dig(from, ...)
  for _, key in ipairs({...}) do
    if type(from) ~= "table" then
      return nil
    end
    from = from[key]
  end
  return from
end
