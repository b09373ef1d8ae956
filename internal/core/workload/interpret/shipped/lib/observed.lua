-- observed is the template's generation once every cluster has it and has seen it; until then it stays what it was.
local function observed(template, items)
  local was, now = dig(template, "status", "observedGeneration"), amount(template, "metadata", "generation")
  local count = 0
  for _, item in each(items) do
    count = count + 1
    local behind = amount(item, "status", "resourceTemplateGeneration") < now
      or amount(item, "status", "observedGeneration") < amount(item, "status", "generation")
    if type(dig(item, "status")) ~= "table" or behind then
      return was
    end
  end
  if count == 0 then
    return was
  end
  return now
end
