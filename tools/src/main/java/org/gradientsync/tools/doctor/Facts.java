package org.gradientsync.tools.doctor;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The facts about one rank: values by section and name, in insertion order. As text each fact is
 * one line, so the output of a process that died can still be read. Thread-safe.
 */
final class Facts {
  private final Map<String, Map<String, String>> sections = new LinkedHashMap<>();

  /** Adds or changes a fact. */
  synchronized Facts add(String section, String name, Object value) {
    sections
        .computeIfAbsent(section, key -> new LinkedHashMap<>())
        .put(name, String.valueOf(value).strip());
    return this;
  }

  synchronized void addAll(Facts others) {
    others.copy().forEach((section, facts) -> facts.forEach((k, v) -> add(section, k, v)));
  }

  /** Returns a value, or the empty string if it is unknown. */
  synchronized String get(String section, String name) {
    return sections.getOrDefault(section, Map.of()).getOrDefault(name, "");
  }

  synchronized boolean has(String section, String name) {
    return sections.getOrDefault(section, Map.of()).containsKey(name);
  }

  /** Returns the facts of one section by name. */
  synchronized Map<String, String> section(String section) {
    return new LinkedHashMap<>(sections.getOrDefault(section, Map.of()));
  }

  /** Returns all facts without one section. */
  synchronized Facts without(String section) {
    Facts rest = new Facts();
    rest.addAll(this);
    rest.sections.remove(section);
    return rest;
  }

  /** Returns a copy of all facts. */
  synchronized Map<String, Map<String, String>> copy() {
    Map<String, Map<String, String>> copy = new LinkedHashMap<>();
    sections.forEach((section, facts) -> copy.put(section, new LinkedHashMap<>(facts)));
    return copy;
  }

  /** Returns one line for each fact: section, name and value as JSON. */
  synchronized String text() {
    StringBuilder text = new StringBuilder();
    sections.forEach(
        (section, facts) ->
            facts.forEach((name, value) -> text.append(line(section, name, value)).append('\n')));
    return text.toString();
  }

  static String line(String section, String name, Object value) {
    try {
      return JSON.std.asString(List.of(section, name, String.valueOf(value)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads {@link #text}, and ignores other lines. */
  static Facts read(String text) {
    Facts facts = new Facts();
    for (String line : text.split("\n")) {
      try {
        List<String> parts = JSON.std.listOfFrom(String.class, line);
        facts.add(parts.get(0), parts.get(1), parts.get(2));
      } catch (IOException | IndexOutOfBoundsException e) {
        continue; // it is no fact
      }
    }
    return facts;
  }

  /** Joins a list into one value. */
  static String joined(List<String> values) {
    return values.isEmpty() ? "none" : String.join(" ", values);
  }
}
