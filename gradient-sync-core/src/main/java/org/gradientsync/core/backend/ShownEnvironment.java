package org.gradientsync.core.backend;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The environment variables that reports show. Users send reports to others, so reports show only
 * variables that matter here, and no value that looks like a command, which may contain passwords.
 */
public final class ShownEnvironment {
  /** Replaces a value that may hold a secret. */
  public static final String HIDDEN = "(not shown: looks like a command)";

  private static final Set<String> NAMES =
      Set.of(
          "CUDA_DEVICE_MAX_CONNECTIONS",
          "CUDA_DEVICE_ORDER",
          "CUDA_LAUNCH_BLOCKING",
          "CUDA_MODULE_LOADING",
          "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
          "CUDA_MPS_PIPE_DIRECTORY",
          "CUDA_VISIBLE_DEVICES",
          "LD_LIBRARY_PATH",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE",
          "MASTER_ADDR",
          "MASTER_PORT",
          "NVIDIA_DRIVER_CAPABILITIES",
          "NVIDIA_VISIBLE_DEVICES",
          "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE",
          "OMPI_COMM_WORLD_NODE_RANK",
          "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_SIZE",
          "OPAL_PREFIX",
          "PMIX_RANK",
          "PMI_RANK",
          "PMI_SIZE",
          "RANK",
          "SLURM_CPUS_ON_NODE",
          "SLURM_CPUS_PER_TASK",
          "SLURM_GPUS_ON_NODE",
          "SLURM_JOB_ID",
          "SLURM_JOB_NUM_NODES",
          "SLURM_LOCALID",
          "SLURM_MEM_PER_NODE",
          "SLURM_MPI_TYPE",
          "SLURM_NNODES",
          "SLURM_NODEID",
          "SLURM_NTASKS",
          "SLURM_NTASKS_PER_NODE",
          "SLURM_PROCID",
          "SLURM_STEP_ID",
          "SLURM_STEP_NUM_NODES",
          "SLURM_STEP_NUM_TASKS",
          "SLURM_TASKS_PER_NODE",
          "UCX_ERROR_SIGNALS",
          "UCX_IB_GPU_DIRECT_RDMA",
          "UCX_LOG_LEVEL",
          "UCX_MEMTYPE_CACHE",
          "UCX_NET_DEVICES",
          "UCX_RNDV_SCHEME",
          "UCX_RNDV_THRESH",
          "UCX_TLS",
          "WORLD_SIZE");

  /** Open MPI parameters for data transfer, binding and numbering of processes. */
  private static final List<String> PREFIXES =
      List.of(
          "OMPI_MCA_btl",
          "OMPI_MCA_coll",
          "OMPI_MCA_hwloc_base_binding_policy",
          "OMPI_MCA_io",
          "OMPI_MCA_mpi_",
          "OMPI_MCA_mtl",
          "OMPI_MCA_opal_cuda_",
          "OMPI_MCA_osc",
          "OMPI_MCA_pml",
          "OMPI_MCA_rmaps_base_");

  private static final Pattern COMMAND = Pattern.compile("\\s|=|://|@|^-|[,;:]-");

  private ShownEnvironment() {}

  /**
   * {@return the variables that reports show, by name, with their values or {@link #HIDDEN}}
   *
   * @param environment all variables
   */
  public static SortedMap<String, String> of(Map<String, String> environment) {
    SortedMap<String, String> shown = new TreeMap<>();
    environment.forEach(
        (name, value) -> {
          if (NAMES.contains(name) || PREFIXES.stream().anyMatch(name::startsWith)) {
            shown.put(name, valueOf(value));
          }
        });
    return shown;
  }

  /**
   * {@return a value as reports show it: on one line, {@link #HIDDEN} if it looks like a command}
   *
   * @param value any text
   */
  public static String valueOf(String value) {
    return COMMAND.matcher(value).find() ? HIDDEN : ShortText.oneLine(value);
  }
}
