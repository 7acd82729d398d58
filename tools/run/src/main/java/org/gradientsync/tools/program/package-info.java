/**
 * What programs with and without ranks have in common.
 *
 * <p>A {@link Program} has a command line, by picocli, prints, and ends with an exit code; a {@link
 * RankedProgram} also has ranks, which it starts as threads or joins, and whose options {@link
 * SameOptions} compares. A {@link ToolException} is what the user has to change.
 *
 * <p>{@link ByteCount} and {@link Units} read and print numbers, {@link Elements} the elements of a
 * buffer. {@link Progress} says what takes long. {@link NewFile} and {@link Scratch} write files,
 * {@link SearchPath} finds them, {@link ChildProcess} asks other programs, and {@link HostName}
 * names this machine.
 */
package org.gradientsync.tools.program;
