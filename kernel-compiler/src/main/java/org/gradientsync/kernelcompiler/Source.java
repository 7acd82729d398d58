package org.gradientsync.kernelcompiler;

import java.util.SortedMap;

/**
 * The source of one module.
 *
 * @param name the module's name
 * @param headers the files that it can include, by name
 */
record Source(String name, String text, SortedMap<String, String> headers) {}
