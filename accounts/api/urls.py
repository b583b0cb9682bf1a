"""The addresses of sessions and tokens."""

from django.urls import path

from accounts.api import session, tokens

urlpatterns = [
    path("session/", session.SessionView.as_view()),
    path("auth/login/", session.LoginView.as_view()),
    path("auth/logout/", session.LogoutView.as_view()),
    path("auth/token/", tokens.TokenView.as_view()),
    path("auth/tokens/", tokens.TokenListView.as_view()),
    path("auth/tokens/<uuid:id>/", tokens.TokenDetailView.as_view()),
]
