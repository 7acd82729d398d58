package org.gradientsync.tools.run;

/**
 * A setting that ranks need, for {@code --dry-run}.
 *
 * @param text how it is set, or why it is not
 * @param reason what it is good for
 */
record Setting(String text, String reason) {}
