"""Files at the edge: YAML with the line of every key, structure by JSON Schema, atomic writes.

    document = yaml_document.load("slo.yaml")
    document.data                          plain dictionaries, lists, texts, numbers, booleans
    document.place("objectives", 0)        "slo.yaml:4 objectives.0"

Every fault is one `InputError` that names the file, the line and the key.
"""
