"""What the servers of `meve.service` share: HTTP answers, bodies, rates, the OpenAPI document and its page."""
