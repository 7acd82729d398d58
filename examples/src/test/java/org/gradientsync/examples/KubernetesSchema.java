package org.gradientsync.examples;

import java.util.List;
import java.util.Map;

/** Checks values against a schema as those of Kubernetes' kinds. */
final class KubernetesSchema {
  private KubernetesSchema() {}

  /** As the API server checks it, except that unknown fields are errors. */
  static void check(String path, Object value, Map<?, ?> schema, List<String> errors) {
    boolean either = schema.containsKey("x-kubernetes-int-or-string");
    String type = either ? "string" : String.valueOf(schema.get("type"));
    boolean fits =
        switch (type) {
          case "object" -> value instanceof Map;
          case "array" -> value instanceof List;
          case "integer" -> value instanceof Integer || value instanceof Long;
          case "boolean" -> value instanceof Boolean;
          case "string" -> value instanceof String || either && value instanceof Integer;
          default -> false;
        };
    if (!fits) {
      errors.add(path + " is no " + type);
    } else if (value instanceof Map<?, ?> map) {
      checkFields(path, map, schema, errors);
    } else if (value instanceof List<?> list) {
      for (int i = 0; i < list.size(); i++) {
        check(path + "[" + i + "]", list.get(i), (Map<?, ?>) schema.get("items"), errors);
      }
    } else if (schema.get("enum") instanceof List<?> allowed && !allowed.contains(value)) {
      errors.add(path + " is none of " + allowed);
    } else if (schema.get("pattern") instanceof String pattern
        && !String.valueOf(value).matches(pattern)) {
      errors.add(path + " does not match " + pattern);
    }
  }

  private static void checkFields(
      String path, Map<?, ?> map, Map<?, ?> schema, List<String> errors) {
    String prefix = path.isEmpty() ? "" : path + ".";
    if (schema.get("required") instanceof List<?> required) {
      for (Object name : required) {
        if (!map.containsKey(name)) {
          errors.add(prefix + name + " is missing");
        }
      }
    }
    if (path.equals("metadata")) {
      return; // the same for all kinds
    }
    Map<?, ?> fields = (Map<?, ?>) schema.get("properties");
    for (Map.Entry<?, ?> field : map.entrySet()) {
      Object known =
          fields == null ? schema.get("additionalProperties") : fields.get(field.getKey());
      if (known instanceof Map<?, ?> inner) {
        check(prefix + field.getKey(), field.getValue(), inner, errors);
      } else {
        errors.add(prefix + field.getKey() + " is unknown");
      }
    }
  }
}
