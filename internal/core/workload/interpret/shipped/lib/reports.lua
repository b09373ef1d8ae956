-- reports are the items of clusters that report a status, sorted by cluster.
local function reports(items)
  local found = {}
  for _, item in each(items) do
    if type(dig(item, "status")) == "table" then
      table.insert(found, item)
    end
  end
  table.sort(found, function(a, b)
    return tostring(a.clusterName) < tostring(b.clusterName)
  end)
  return found
end
