-- trainingcomponents are the kinds of pods of a training job, whose specs are at a field of its spec.
local function trainingcomponents(object, field)
  local list = {}
  for _, name in ipairs(keys(object, "spec", field)) do
    local group = object.spec[field][name]
    component(list, object, string.lower(tostring(name)), tonumber(dig(group, "replicas")) or 1, dig(group, "template"))
  end
  return list
end
