"""Property tests run 100 examples each, and 2,000 with `pytest --hypothesis-profile=long`."""

from hypothesis import HealthCheck, settings

settings.register_profile("normal", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("normal"), max_examples=2000)
if settings.get_current_profile_name() == "default":
    settings.load_profile("normal")
