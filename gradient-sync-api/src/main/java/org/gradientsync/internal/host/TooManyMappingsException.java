package org.gradientsync.internal.host;

import java.io.IOException;

/** That this process may map no more memory. */
final class TooManyMappingsException extends IOException {
  private static final long serialVersionUID = 1L;

  TooManyMappingsException(String message) {
    super(message);
  }
}
