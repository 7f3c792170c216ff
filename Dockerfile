# interverse on a CPU, with the tested versions: docker build -t interverse . && docker run -it interverse interverse list
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libgl1-mesa-dri libosmesa6 ffmpeg fonts-dejavu-core gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /interverse
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY interverse interverse
RUN pip install --no-cache-dir -c constraints.txt ".[torch,rl,report,control,rooms,view]"
WORKDIR /runs
CMD ["interverse", "list"]
