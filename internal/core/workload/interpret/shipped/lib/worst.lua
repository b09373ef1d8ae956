-- worst is the report whose value at a path of its status comes first in the order given; a value that is not in it comes
-- before all others, since nobody knows it. An absent value is "".
local function worst(found, order, ...)
  local rank = {}
  for i, value in ipairs(order) do
    rank[value] = i
  end
  local best, lowest = nil, nil
  for _, report in ipairs(found) do
    local r = rank[dig(report, "status", ...) or ""] or 0
    if lowest == nil or r < lowest then
      best, lowest = report, r
    end
  end
  return best
end
