-- amount is the number at a path of keys; 0 when there is none.
local function amount(from, ...)
  return tonumber(dig(from, ...)) or 0
end
