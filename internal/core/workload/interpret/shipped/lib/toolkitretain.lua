-- toolkitretain leaves a suspension to the member unless the template decides about it.
local function toolkitretain(desired, observed)
  local suspended = dig(observed, "spec", "suspend")
  if type(dig(desired, "spec")) == "table" and desired.spec.suspend == nil and suspended ~= nil then
    desired.spec.suspend = suspended
  end
  return desired
end
