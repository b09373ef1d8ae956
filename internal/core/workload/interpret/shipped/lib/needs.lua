-- needs adds the objects that the pods of a template need to a list, if there is a template.
local function needs(list, object, template)
  if type(dig(template, "spec")) ~= "table" then
    return
  end
  for _, reference in each(require("kube").getPodDependencies(template, dig(object, "metadata", "namespace"))) do
    table.insert(list, reference)
  end
end
