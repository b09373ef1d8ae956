-- requirement is what a pod of a template needs; nil when there is no template.
local function requirement(template, object)
  if type(dig(template, "spec")) ~= "table" then
    return nil
  end
  local asked = require("kube").accuratePodRequirements(template)
  if type(asked) == "table" then
    asked.namespace = dig(object, "metadata", "namespace")
  end
  return asked
end
