-- condition is the condition of a type in a status; an empty table when there is none.
local function condition(status, kind)
  for _, c in each(status, "conditions") do
    if dig(c, "type") == kind then
      return c
    end
  end
  return {}
end
