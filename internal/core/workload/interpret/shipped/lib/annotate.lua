-- annotate gives a member's status the generations by which it is judged on the hub: the object's own, and the one of the
-- template that it was made from.
local function annotate(object)
  local status = dig(object, "status")
  if type(status) ~= "table" then
    return nil
  end
  status.generation = dig(object, "metadata", "generation")
  status.resourceTemplateGeneration = tonumber(dig(object, "metadata", "annotations", "resourcetemplate.karmada.io/generation"))
  return status
end
