-- mebibytes is an amount of memory as the JVM writes it, in which 512m are mebibytes, k is 1024 and a bare number counts units
-- of bytes; a Kubernetes quantity such as 2Gi too. nil when it is neither.
local function mebibytes(text, units)
  local number, unit = string.match(string.lower(tostring(text or "")), "^%s*([%d%.]+)%s*(%a*)%s*$")
  number = tonumber(number)
  local powers = { b = 0, k = 1, kb = 1, ki = 1, kib = 1, m = 2, mb = 2, mi = 2, mib = 2, g = 3, gb = 3, gi = 3, gib = 3, t = 4, tb = 4, ti = 4, tib = 4 }
  if number == nil then
    return nil
  end
  if unit == "" then
    return number * units / 1048576
  end
  if powers[unit] == nil then
    return nil
  end
  return number * 1024 ^ (powers[unit] - 2)
end
