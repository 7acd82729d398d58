package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The indexed job for Kubernetes is one, and its ranks find each other as the docs have it. */
class IndexedJobTest {
  private static final Path FILE = Path.of("kubernetes", "indexed-job.yaml");

  private Map<?, ?> service;
  private Map<?, ?> job;

  private static Yaml yaml() {
    return new Yaml(new SafeConstructor(new LoaderOptions()));
  }

  @BeforeEach
  void read() throws IOException {
    List<Map<?, ?>> documents = new ArrayList<>();
    try (Reader reader = Files.newBufferedReader(FILE)) {
      yaml().loadAll(reader).forEach(document -> documents.add((Map<?, ?>) document));
    }
    assertEquals(2, documents.size());
    service = documents.get(0);
    job = documents.get(1);
  }

  private static List<String> errors(Map<?, ?> document) throws IOException {
    List<String> errors = new ArrayList<>();
    try (InputStream in = IndexedJobTest.class.getResourceAsStream("indexed-job-schema.yaml")) {
      Map<?, ?> schemas = yaml().load(in);
      Map<?, ?> schema = (Map<?, ?>) schemas.get(document.get("kind"));
      KubernetesSchema.check("", document, schema, errors);
    }
    return errors;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> in(Map<?, ?> document, String... path) {
    Map<?, ?> at = document;
    for (String name : path) {
      at = (Map<?, ?>) at.get(name);
    }
    return (Map<String, Object>) at;
  }

  @SuppressWarnings("unchecked")
  private Map<String, Object> container() {
    List<?> containers = (List<?>) in(job, "spec", "template", "spec").get("containers");
    return (Map<String, Object>) containers.get(0);
  }

  @Test
  void bothFitTheSchemasOfTheirKinds() throws IOException {
    assertEquals("Service", service.get("kind"));
    assertEquals("Job", job.get("kind"));
    assertEquals(List.of(), errors(service));
    assertEquals(List.of(), errors(job));
  }

  @Test
  void mistakesAreFound() throws IOException {
    in(job, "spec").put("completionMode", "indexed");
    assertEquals(List.of("spec.completionMode is none of [Indexed, NonIndexed]"), errors(job));
    read();
    in(job, "spec").remove("template");
    assertEquals(List.of("spec.template is missing"), errors(job));
    read();
    in(job, "spec", "template", "spec").put("restartPolicy", "Always");
    assertEquals(
        List.of("spec.template.spec.restartPolicy is none of [Never, OnFailure]"), errors(job));
    read();
    container().put("enviroment", List.of());
    assertEquals(List.of("spec.template.spec.containers[0].enviroment is unknown"), errors(job));
    read();
    in(service, "spec").put("publishNotReadyAddresses", "true");
    assertEquals(List.of("spec.publishNotReadyAddresses is no boolean"), errors(service));
  }

  /** A pod's name is that of the job with its index, under the service, which selects the job. */
  @Test
  void ranksFindPodZeroUnderTheService() {
    Object name = in(job, "metadata").get("name");
    Object subdomain = in(job, "spec", "template", "spec").get("subdomain");
    assertEquals(in(service, "metadata").get("name"), subdomain);
    assertEquals(Map.of("job-name", name), in(service, "spec").get("selector"));
    assertEquals("None", in(service, "spec").get("clusterIP"));
    assertEquals(true, in(service, "spec").get("publishNotReadyAddresses"));
    Map<String, Map<?, ?>> variables = variables((List<?>) container().get("env"));
    assertEquals(
        Set.of("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GRADIENTSYNC_SECRET"),
        variables.keySet());
    assertEquals(name + "-0." + subdomain, variables.get("MASTER_ADDR").get("value"));
    String ranks = variables.get("WORLD_SIZE").get("value").toString();
    assertEquals("Indexed", in(job, "spec").get("completionMode"));
    assertEquals(ranks, in(job, "spec").get("completions").toString());
    assertEquals(ranks, in(job, "spec").get("parallelism").toString());
    String index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    assertEquals(index, in(variables.get("RANK"), "valueFrom", "fieldRef").get("fieldPath"));
  }

  private static Map<String, Map<?, ?>> variables(List<?> list) {
    return list.stream()
        .map(one -> (Map<?, ?>) one)
        .collect(Collectors.toMap(one -> one.get("name").toString(), one -> one));
  }

  @Test
  void theProgramExists() {
    List<?> arguments = (List<?>) container().get("args");
    String main = arguments.get(arguments.indexOf("-cp") + 2).toString();
    assertDoesNotThrow(() -> Class.forName(main, false, getClass().getClassLoader()));
  }

  @Test
  void thePageHasTheSameVariables() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "starting-without-mpi.md"));
    int start = page.indexOf("```yaml\n");
    assertTrue(start > 0);
    start += "```yaml\n".length();
    Map<?, ?> shown = yaml().load(page.substring(start, page.indexOf("```", start)));
    assertEquals(container().get("env"), shown.get("env"));
  }
}
