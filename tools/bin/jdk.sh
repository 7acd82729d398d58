# Sourced by gradient-sync and launch: sets java, the JDK's command, and version, for example 17, or nothing.
# JAVA_HOME chooses the JDK, otherwise the PATH does.

refuse_java() {
  echo "gradient-sync: $1; install a JDK of version 17 or newer, and set JAVA_HOME to its folder" >&2
  exit 3
}

if [[ -n ${JAVA_HOME-} ]]; then
  java=$JAVA_HOME/bin/java
  [[ -x $java ]] || refuse_java "there is no java in JAVA_HOME: JAVA_HOME=$JAVA_HOME"
else
  java=$(command -v java) || refuse_java "there is no java on the PATH"
fi

# The release file beside the JDK tells the version at no cost; where there is none, java itself is asked.
java_home=$(dirname -- "$(dirname -- "$(readlink -f -- "$java")")")
full=$(sed -n 's/^JAVA_VERSION="\([^"]*\)".*/\1/p' "$java_home/release" 2>/dev/null) || true
if [[ -z $full ]]; then
  full=$("$java" -version 2>&1 | sed -n '/ version "/{s/.* version "\([^"]*\)".*/\1/p;q}') || true
fi
version=${full%%[!0-9]*}
if [[ -n $version ]] && (( version < 17 )); then # Java 8 says 1.8
  refuse_java "this Java is too old: $java is version $full"
fi
