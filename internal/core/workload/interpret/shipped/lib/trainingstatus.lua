-- trainingstatus folds the statuses of a training job that runs in several clusters: it has succeeded when it has in all of
-- them, and has failed when it has in one.
local function trainingstatus(template, items)
  local status = alone(template, items)
  if status == nil then
    local found = reports(items)
    status = { startTime = extreme(found, false, "startTime"), replicaStatuses = {} }
    local over = #found > 0 and #found == #(items or {})
    for _, report in ipairs(found) do
      for _, kind in ipairs(keys(report, "status", "replicaStatuses")) do
        local total = status.replicaStatuses[kind] or { active = 0, succeeded = 0, failed = 0 }
        for counter, n in pairs(total) do
          total[counter] = n + amount(report, "status", "replicaStatuses", kind, counter)
        end
        status.replicaStatuses[kind] = total
      end
      over = over and dig(report, "status", "completionTime") ~= nil
    end
    if over then
      status.completionTime = extreme(found, true, "completionTime")
    end
    status.lastReconcileTime = extreme(found, true, "lastReconcileTime")
    status.conditions = conditions(found, { Failed = true, Restarting = true, Running = true })
  end
  template.status = status
  return template
end
