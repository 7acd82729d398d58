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
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/**
 * The job for Kubernetes is one that the MPI Operator accepts, and starts the ranks as the docs.
 */
class KubernetesTest {
  private static final Path JOB = Path.of("kubernetes", "train.yaml");

  private Map<?, ?> job;

  @BeforeEach
  void read() throws IOException {
    try (Reader reader = Files.newBufferedReader(JOB)) {
      job = yaml().load(reader);
    }
  }

  private static Yaml yaml() {
    return new Yaml(new SafeConstructor(new LoaderOptions()));
  }

  private static Map<?, ?> schema() throws IOException {
    try (InputStream in = KubernetesTest.class.getResourceAsStream("mpijob-schema.yaml")) {
      return yaml().load(in);
    }
  }

  @Test
  void theJobFitsTheOperatorsSchema() throws IOException {
    assertEquals("kubeflow.org/v2beta1", job.get("apiVersion"));
    assertEquals("MPIJob", job.get("kind"));
    assertEquals(List.of(), errors(job));
  }

  @Test
  void mistakesAreFound() throws IOException {
    change("spec").remove("mpiReplicaSpecs");
    assertEquals(List.of("spec.mpiReplicaSpecs is missing"), errors(job));
    read();
    change("spec").put("slotsPerWorkers", 8);
    assertEquals(List.of("spec.slotsPerWorkers is unknown"), errors(job));
    read();
    change("spec").put("mpiImplementation", "MPI");
    assertEquals(List.of("spec.mpiImplementation is none of [OpenMPI, Intel, MPICH]"), errors(job));
    read();
    container("Launcher").put("args", List.of(16));
    assertEquals(
        List.of("spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].args[0] is no string"),
        errors(job));
  }

  @Test
  void mpirunStartsARankInEachSlotOfTheWorkers() {
    List<?> arguments = (List<?>) container("Launcher").get("args");
    assertEquals(List.of("mpirun"), container("Launcher").get("command"));
    int slots = (Integer) change("spec").get("slotsPerWorker");
    int workers = (Integer) change("spec", "mpiReplicaSpecs", "Worker").get("replicas");
    assertEquals(String.valueOf(slots * workers), after(arguments, "-np"));
    assertEquals("none", after(arguments, "--bind-to"));
    assertEquals("slot", after(arguments, "--map-by"));
    assertEquals("UCX_ERROR_SIGNALS=", after(arguments, "-x"));
    String main = (String) after(arguments, after(arguments, "-cp"));
    assertDoesNotThrow(() -> Class.forName(main, false, getClass().getClassLoader()));
  }

  @Test
  void theDocsHaveTheSameLaunchOptions() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "schedulers.md"));
    assertTrue(page.contains("mpirun -np 16 --map-by slot --bind-to none -x UCX_ERROR_SIGNALS= "));
    List<?> arguments = (List<?>) container("Launcher").get("args");
    String line = String.join(" ", arguments.stream().map(String.class::cast).toList());
    assertTrue(line.startsWith("-np 16 --map-by slot --bind-to none -x UCX_ERROR_SIGNALS= "), line);
  }

  /** The launcher sees its pods only by ssh, so each container is named, and a worker runs sshd. */
  @Test
  void workersRunAnSshDaemonAsTheUserWhoseKeysAreMounted() {
    assertEquals(List.of("/usr/sbin/sshd"), container("Worker").get("command"));
    assertTrue(String.valueOf(change("spec").get("sshAuthMountPath")).endsWith("/.ssh"));
    assertEquals(container("Launcher").get("image"), container("Worker").get("image"));
    assertEquals(
        container("Launcher").get("securityContext"), container("Worker").get("securityContext"));
  }

  private static Object after(List<?> arguments, Object option) {
    int at = arguments.indexOf(option);
    assertTrue(at >= 0 && at + 1 < arguments.size(), () -> "no " + option + " in " + arguments);
    return arguments.get(at + 1);
  }

  @SuppressWarnings("unchecked")
  private Map<String, Object> change(String... path) {
    Map<?, ?> at = job;
    for (String name : path) {
      at = (Map<?, ?>) at.get(name);
    }
    return (Map<String, Object>) at;
  }

  @SuppressWarnings("unchecked")
  private Map<String, Object> container(String replica) {
    Map<String, Object> pod = change("spec", "mpiReplicaSpecs", replica, "template", "spec");
    return (Map<String, Object>) ((List<?>) pod.get("containers")).get(0);
  }

  private static List<String> errors(Map<?, ?> job) throws IOException {
    List<String> errors = new ArrayList<>();
    KubernetesSchema.check("", job, schema(), errors);
    return errors;
  }
}
