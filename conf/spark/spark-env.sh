# Read by Spark's scripts before they look for Java: take what `python -m mcspark.runtime.local` has prepared.
if [ -f "${SPARK_HOME}/conf/spark-env.sh" ]; then
  . "${SPARK_HOME}/conf/spark-env.sh"
fi
