"""What a real `jfr print` says, cut to what matters."""

import pytest

RECORDING = """\
jdk.JVMInformation {
  startTime = 22:56:57.100 (2026-11-21)
  jvmName = "OpenJDK 64-Bit Server VM"
  jvmArguments = "-Xms768m -Xmx768m"
  jvmFlags = N/A
  jvmStartTime = 22:56:38.272 (2026-11-21)
  pid = 4964
}

jdk.NativeMethodSample {
  startTime = 22:56:57.672 (2026-11-21)
  sampledThread = "FileSystemWatchService" (javaThreadId = 34)
  state = "STATE_RUNNABLE"
  stackTrace = [
    sun.nio.fs.LinuxWatchService.poll(int, int)
    sun.nio.fs.LinuxWatchService$Poller.run()
    java.lang.Thread.run()
  ]
}

jdk.ExecutionSample {
  startTime = 22:56:57.678 (2026-11-21)
  sampledThread = "elasticsearch[benchctl][search][T#1]" (javaThreadId = 25)
  state = "STATE_RUNNABLE"
  stackTrace = [
    org.apache.lucene.util.bkd.DocIdsWriter.readInts24(IndexInput, int, PointValues$Visitor) line: 305
    org.apache.lucene.search.Weight.scorerSupplier(LeafReaderContext) line: 135
    java.util.function.Supplier$$Lambda$1432+0x00007f0a9c5b1a28.apply(Object)
    java.lang.Thread.run()
  ]
}

jdk.ExecutionSample {
  startTime = 22:56:57.700 (2026-11-21)
  sampledThread = "elasticsearch[benchctl][search][T#1]" (javaThreadId = 25)
  state = "STATE_RUNNABLE"
  stackTrace = [
    org.apache.lucene.search.Weight.scorerSupplier(LeafReaderContext) line: 135
    ...
  ]
}

jdk.ExecutionSample {
  startTime = 22:56:57.710 (2026-11-21)
  sampledThread = "elasticsearch[benchctl][search][T#1]" (javaThreadId = 25)
  state = "STATE_RUNNABLE"
  stackTrace = N/A
}

"""


@pytest.fixture
def recording() -> str:
    return RECORDING
