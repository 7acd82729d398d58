/**
 * What programs with and without ranks have in common: command line, printing, exit codes, files.
 */
package org.gradientsync.tools.program;
