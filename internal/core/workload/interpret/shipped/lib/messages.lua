-- messages are the texts at a path of the status, each behind the name of its cluster; nil when there are none.
local function messages(found, ...)
  local texts = {}
  for _, report in ipairs(found) do
    local text = dig(report, "status", ...)
    if type(text) == "string" and text ~= "" then
      table.insert(texts, tostring(report.clusterName) .. ": " .. text)
    end
  end
  if #texts == 0 then
    return nil
  end
  return table.concat(texts, "; ")
end
