-- component adds one kind of pod of the object to a list, if there is a template for it.
local function component(list, object, name, replicas, template)
  local asked = requirement(template, object)
  if asked ~= nil then
    asked.namespace = nil
    table.insert(list, { name = name, replicas = replicas, replicaRequirements = asked })
  end
end
