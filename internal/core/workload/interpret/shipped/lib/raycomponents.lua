-- raycomponents are the components of an object that has a Ray cluster.
local function raycomponents(object, cluster)
  local list = {}
  for _, pod in ipairs(raypods(cluster)) do
    component(list, object, pod.name, pod.replicas, pod.template)
  end
  return list
end
