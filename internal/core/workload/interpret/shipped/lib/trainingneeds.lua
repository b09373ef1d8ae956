-- trainingneeds are the objects that the pods of a training job need.
local function trainingneeds(object, field)
  local list = {}
  for _, name in ipairs(keys(object, "spec", field)) do
    needs(list, object, dig(object.spec[field][name], "template"))
  end
  return list
end
