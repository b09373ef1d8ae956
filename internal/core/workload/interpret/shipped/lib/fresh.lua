-- fresh says whether the member's controller has seen the present generation.
local function fresh(object)
  return amount(object, "status", "observedGeneration") >= amount(object, "metadata", "generation")
end
