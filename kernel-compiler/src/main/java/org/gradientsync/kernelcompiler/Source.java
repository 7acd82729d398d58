package org.gradientsync.kernelcompiler;

import java.util.SortedMap;

/**
 * What is compiled to one module.
 *
 * @param name of the module
 * @param headers what it may include, by their names
 */
record Source(String name, String text, SortedMap<String, String> headers) {}
