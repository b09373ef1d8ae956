-- extreme is the earliest or the latest time of a status field; nil when no report has one. Times of the API are in UTC, so
-- that their order is the one of their letters.
local function extreme(found, latest, ...)
  local best = nil
  for _, report in ipairs(found) do
    local time = dig(report, "status", ...)
    if type(time) == "string" and (best == nil or (time > best) == latest) then
      best = time
    end
  end
  return best
end
