-- rayneeds are the objects that the pods of a Ray cluster need.
local function rayneeds(object, cluster)
  local list = {}
  for _, pod in ipairs(raypods(cluster)) do
    needs(list, object, pod.template)
  end
  reference(list, object, "Secret", dig(cluster, "gcsFaultToleranceOptions", "redisPassword", "valueFrom", "secretKeyRef", "name"))
  return list
end
