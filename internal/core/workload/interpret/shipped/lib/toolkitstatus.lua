-- toolkitstatus folds the statuses of an object of the GitOps Toolkit: conditions, the generation, and the fields given
-- where the clusters agree.
local function toolkitstatus(template, items, ...)
  local status = alone(template, items)
  if status == nil then
    local found = reports(items)
    status = { observedGeneration = observed(template, items) }
    agree(status, found, ...)
    status.conditions = conditions(found, { Stalled = true, Reconciling = true })
  end
  template.status = status
  return template
end
