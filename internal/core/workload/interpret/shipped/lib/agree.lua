-- agree sets those fields of status that all reports have alike; where clusters differ, the binding says which has what.
local function agree(status, found, ...)
  for _, field in ipairs({...}) do
    local value = dig(found, 1, "status", field)
    for _, report in ipairs(found) do
      if not same(value, dig(report, "status", field)) then
        value = nil
      end
    end
    status[field] = value
  end
end
