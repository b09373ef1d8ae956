-- raypods are the kinds of pods of a Ray cluster: one head, and workers in groups; a group that is suspended has none.
local function raypods(cluster)
  local pods = { { name = "ray-head", replicas = 1, template = dig(cluster, "headGroupSpec", "template") } }
  for i, group in each(cluster, "workerGroupSpecs") do
    local n = tonumber(dig(group, "replicas")) or amount(group, "minReplicas")
    if dig(group, "suspend") == true then
      n = 0
    end
    table.insert(pods, {
      name = dig(group, "groupName") or ("worker-" .. i),
      replicas = n * (tonumber(dig(group, "numOfHosts")) or 1),
      template = dig(group, "template"),
    })
  end
  return pods
end
