/**
 * What programs with and without ranks have in common.
 *
 * <p>A {@code Program} has a command line, by picocli, prints, and ends with an exit code; a {@code
 * RankedProgram} also has ranks, which it starts as threads or joins, and whose options {@code
 * SameOptions} compares. A {@code ToolException} is what the user has to change.
 *
 * <p>{@code ByteCount} and {@code Units} read and print numbers, {@code Elements} the elements of a
 * buffer. {@code Progress} says what takes long. {@code NewFile} and {@code Scratch} write files,
 * {@code SearchPath} finds them, {@code ChildProcess} asks other programs, and {@code HostName}
 * names this machine.
 */
package org.gradientsync.tools.program;
