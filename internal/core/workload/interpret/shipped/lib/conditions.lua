-- conditions folds those of all reports, sorted by type. A condition is True when it is in every cluster, False when it is in
-- one; those in anywhere are True when they are in one. The message names the clusters that decided.
local function conditions(found, anywhere)
  local kinds = {}
  for _, report in ipairs(found) do
    for _, c in each(report, "status", "conditions") do
      if type(dig(c, "type")) == "string" then
        kinds[c.type] = true
      end
    end
  end
  local folded = {}
  for _, kind in ipairs(keys(kinds)) do
    local held = { True = {}, False = {}, Unknown = {} }
    for _, report in ipairs(found) do
      local c = condition(report.status, kind)
      table.insert(held[c.status] or held.Unknown, { cluster = report.clusterName, condition = c })
    end
    local order = { "False", "Unknown", "True" }
    if anywhere[kind] then
      order = { "True", "False", "Unknown" }
    end
    for _, verdict in ipairs(order) do
      if #held[verdict] > 0 then
        local result, texts = { type = kind, status = verdict }, {}
        for _, by in ipairs(held[verdict]) do
          local text = by.condition.message
          if type(text) == "string" and text ~= "" then
            table.insert(texts, tostring(by.cluster) .. ": " .. text)
          end
          result.reason = result.reason or by.condition.reason
          for _, field in ipairs({ "lastTransitionTime", "lastUpdateTime", "lastProbeTime" }) do
            local time = by.condition[field]
            if type(time) == "string" and time > (result[field] or "") then
              result[field] = time
            end
          end
        end
        result.message = table.concat(texts, "; ")
        table.insert(folded, result)
        break
      end
    end
  end
  return folded
end
