package org.gradientsync.tools.run;

import java.nio.file.Path;
import java.util.List;

/**
 * What the user wants to run.
 *
 * @param hosts null for this machine, or those of the allocation
 * @param hostFile null for none
 * @param prefixed whether each line has the rank that printed it
 * @param forwarded names of environment variables for ranks of other nodes
 * @param program the class path and what to start on it
 * @param jvmOptions the user's options, which win
 */
record JobRequest(
    int ranks,
    Hosts hosts,
    Path hostFile,
    boolean oversubscribed,
    boolean prefixed,
    List<String> forwarded,
    ProgramFiles program,
    List<String> jvmOptions) {}
