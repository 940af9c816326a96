"""moto, one request at a time: by itself it checks a condition and writes in two steps, between which others write.

S3 and DynamoDB do both in one, and that is what the races in these tests are about.
"""

import sys
import threading
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


class OneAtATime:
    """An application that others wait for."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._turn = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        with self._turn:
            return self._application(environ, start_response)


if __name__ == "__main__":
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
