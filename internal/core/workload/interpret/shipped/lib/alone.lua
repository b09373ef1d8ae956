-- alone is the status of the one cluster that shall hold the object, in terms of the template: its word is taken whole.
-- nil when there are several, or when it has not reported.
local function alone(template, items)
  local found = reports(items)
  if #found ~= 1 or #items ~= 1 then
    return nil
  end
  local status = found[1].status
  if status.observedGeneration ~= nil then
    status.observedGeneration = observed(template, items)
  end
  status.generation = nil
  status.resourceTemplateGeneration = nil
  for _, condition in each(status, "conditions") do
    condition.observedGeneration = nil
  end
  return status
end
