-- sum adds up counters over the reports into status.
local function sum(status, found, ...)
  for _, counter in ipairs({...}) do
    local total = 0
    for _, report in ipairs(found) do
      total = total + amount(report, "status", counter)
    end
    status[counter] = total
  end
end
