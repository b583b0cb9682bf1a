"""The addresses of sessions and tokens."""

from django.urls import path

from accounts.api import session

urlpatterns = [
    path("session/", session.SessionView.as_view()),
    path("auth/login/", session.LoginView.as_view()),
    path("auth/logout/", session.LogoutView.as_view()),
    path("auth/token/", session.TokenView.as_view()),
]
