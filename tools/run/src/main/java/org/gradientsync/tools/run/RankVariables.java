package org.gradientsync.tools.run;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The variables of the environment that the user gives to ranks, as NAME or NAME=VALUE. */
record RankVariables(List<String> words) {
  List<String> names() {
    return words.stream().map(word -> word.split("=", 2)[0]).toList();
  }

  /** Returns those with a value, but no empty secret; the last one counts. */
  Map<String, String> values() {
    return words.stream()
        .filter(word -> word.contains("=") && !word.equals(RanksAsProcesses.SECRET + "="))
        .map(word -> word.split("=", 2))
        .collect(Collectors.toMap(v -> v[0], v -> v[1], (v, last) -> last, LinkedHashMap::new));
  }

  /** Returns the job's secret, which is that of the environment if there is no value for it. */
  String secret(Map<String, String> environment) {
    String given = values().getOrDefault(RanksAsProcesses.SECRET, "");
    return given.isBlank() ? environment.getOrDefault(RanksAsProcesses.SECRET, "") : given;
  }
}
