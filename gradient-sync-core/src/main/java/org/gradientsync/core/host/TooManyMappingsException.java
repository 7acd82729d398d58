package org.gradientsync.core.host;

import java.io.IOException;

/** This process may not map more memory. */
final class TooManyMappingsException extends IOException {
  private static final long serialVersionUID = 1L;

  TooManyMappingsException(String message) {
    super(message);
  }
}
