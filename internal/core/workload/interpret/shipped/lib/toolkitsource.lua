-- toolkitsource folds the statuses of a source. Each cluster stores an artifact of its own: with all at one revision, the
-- first stands for them.
local function toolkitsource(template, items, ...)
  local several = alone(template, items) == nil
  local aggregated, found = toolkitstatus(template, items, ...), reports(items)
  if several and #found == #(items or {}) then
    local first = dig(found, 1, "status", "artifact")
    for _, report in ipairs(found) do
      if dig(report, "status", "artifact", "revision") ~= dig(first, "revision") then
        first = nil
      end
    end
    aggregated.status.artifact = first
  end
  return aggregated
end
