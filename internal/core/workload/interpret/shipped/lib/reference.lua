-- reference adds one object of the core group in the same namespace to a list, if it has a name.
local function reference(list, object, kind, name)
  if type(name) == "string" and name ~= "" then
    table.insert(list, { apiVersion = "v1", kind = kind, namespace = dig(object, "metadata", "namespace"), name = name })
  end
end
